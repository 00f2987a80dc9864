"""The names and descriptions of three hundred tools."""

from __future__ import annotations

VERBS = {
    "create": "Create a new {}",
    "delete": "Delete a {} for good",
    "list": "List every {}",
    "search": "Search for a {} by its words",
    "rename": "Give a {} another name",
    "archive": "Put a {} into the archive",
    "share": "Share a {} with a colleague",
    "export": "Export a {} as a spreadsheet",
    "print": "Print a {} on paper",
    "translate": "Translate a {} into another language",
}
NOUNS = [
    "invoice", "recipe", "photo album", "flight booking", "support ticket", "bank account", "song", "novel",
    "birthday", "garden plan", "patient record", "parking permit", "football match", "weather station",
    "train timetable", "museum ticket", "sewing pattern", "chess game", "rental contract", "school report",
    "podcast", "vaccination", "shopping list", "telescope image", "wine bottle", "tax return", "job offer",
    "map", "poem", "battery",
]  # fmt: skip
