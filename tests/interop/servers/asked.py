"""What is asked of each tool of the servers: a sentence that means it, and arguments that it takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: server -> tool -> (what a person might say who needs it, arguments; `{files}`, `{repository}`: folders)
ASKED: Final[Mapping[str, Mapping[str, tuple[str, dict[str, Any]]]]] = {
    "time": {
        "get_current_time": ("what time is it in Tokyo", {"timezone": "Asia/Tokyo"}),
        "convert_time": (
            "convert four in the afternoon from London time to New York time",
            {"source_timezone": "Europe/London", "time": "16:00", "target_timezone": "America/New_York"},
        ),
    },
    "git": {
        "git_status": ("show the status of the working tree", {"repo_path": "{repository}"}),
        "git_diff_unstaged": ("which changes are not staged yet", {"repo_path": "{repository}"}),
        "git_diff_staged": ("show what is staged for the next commit", {"repo_path": "{repository}"}),
        "git_diff": (
            "compare two branches or commits",
            {"repo_path": "{repository}", "target": "main"},
        ),
        "git_add": (
            "put a file into the staging area",
            {"repo_path": "{repository}", "files": ["a.txt"]},
        ),
        "git_commit": (
            "record the changes in the repository",
            {"repo_path": "{repository}", "message": "More"},
        ),
        "git_reset": ("unstage everything again", {"repo_path": "{repository}"}),
        "git_log": ("show the log of commits", {"repo_path": "{repository}"}),
        "git_create_branch": (
            "create a new branch from the base branch",
            {"repo_path": "{repository}", "branch_name": "next"},
        ),
        "git_checkout": (
            "switch to another branch",
            {"repo_path": "{repository}", "branch_name": "main"},
        ),
        "git_show": (
            "show the contents of one commit",
            {"repo_path": "{repository}", "revision": "HEAD"},
        ),
        "git_branch": (
            "list the git branches",
            {"repo_path": "{repository}", "branch_type": "local"},
        ),
    },
    "files": {
        "read_file": ("read the complete contents of a file", {"path": "{files}/note.txt"}),
        "read_text_file": (
            "read a text file from the file system, whatever its encoding",
            {"path": "{files}/note.txt"},
        ),
        "read_media_file": (
            "read an image or audio file as base64",
            {"path": "{files}/dot.png"},
        ),
        "read_multiple_files": (
            "read several files at the same time",
            {"paths": ["{files}/note.txt"]},
        ),
        "write_file": (
            "create a new file with this content",
            {"path": "{files}/new.txt", "content": "bread"},
        ),
        "edit_file": (
            "change a line in a text file",
            {"path": "{files}/note.txt", "edits": [{"oldText": "milk", "newText": "tea"}]},
        ),
        "create_directory": ("make a new directory", {"path": "{files}/inside"}),
        "list_directory": (
            "list the files and directories in a path",
            {"path": "{files}"},
        ),
        "list_directory_with_sizes": (
            "list the files of a directory including their sizes",
            {"path": "{files}"},
        ),
        "directory_tree": (
            "get a recursive tree view of a directory as JSON",
            {"path": "{files}"},
        ),
        "move_file": (
            "move a file or rename it",
            {"source": "{files}/new.txt", "destination": "{files}/old.txt"},
        ),
        "search_files": (
            "search recursively for files that match a pattern",
            {"path": "{files}", "pattern": "*.txt"},
        ),
        "get_file_info": (
            "metadata of a file, such as size and when it was modified",
            {"path": "{files}/note.txt"},
        ),
        "list_allowed_directories": ("which directories may this server access", {}),
    },
    "memory": {
        "create_entities": (
            "create new entities in the knowledge graph",
            {"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]},
        ),
        "create_relations": (
            "create a relation between two entities",
            {"relations": [{"from": "Ada", "to": "Ada", "relationType": "knows"}]},
        ),
        "add_observations": (
            "add an observation to an entity that exists",
            {"observations": [{"entityName": "Ada", "contents": ["writes"]}]},
        ),
        "read_graph": ("read the whole knowledge graph", {}),
        "search_nodes": ("search the knowledge graph for nodes", {"query": "Ada"}),
        "open_nodes": ("open nodes of the knowledge graph by their names", {"names": ["Ada"]}),
        "delete_observations": (
            "delete observations from an entity",
            {"deletions": [{"entityName": "Ada", "observations": ["counts"]}]},
        ),
        "delete_relations": (
            "delete relations from the knowledge graph",
            {"relations": [{"from": "Ada", "to": "Ada", "relationType": "knows"}]},
        ),
        "delete_entities": ("delete entities from the knowledge graph", {"entityNames": ["Ada"]}),
    },
    "everything": {
        "echo": ("echo back what I type", {"message": "hello"}),
        "get-annotated-message": (
            "show how annotations give metadata about content",
            {"messageType": "success", "includeImage": True},
        ),
        "get-env": ("show all environment variables", {}),
        "get-resource-links": ("give me links to some resources", {"count": 2}),
        "get-resource-reference": (
            "give me a reference to a resource",
            {"resourceType": "Text", "resourceId": 1},
        ),
        "get-structured-content": (
            "structured content with an output schema",
            {"location": "New York"},
        ),
        "get-sum": ("add two numbers", {"a": 2, "b": 3}),
        "get-tiny-image": ("a tiny image of the MCP logo", {}),
        "gzip-file-as-resource": (
            "compress a single file with gzip",
            {"name": "a.gz", "data": "data:text/plain;base64,aGVsbG8=", "outputType": "resource"},
        ),
        "toggle-simulated-logging": ("turn simulated logging on or off", {}),
        "toggle-subscriber-updates": ("turn simulated resource subscription updates on or off", {}),
        "trigger-long-running-operation": (
            "a long operation that tells its progress",
            {"duration": 0.2, "steps": 2},
        ),
        "simulate-research-query": ("simulate deep research on a topic", {"topic": "tea"}),
    },
}
#: what cannot succeed here, and the code it ends with: the server begins a task, which this client does not.
REFUSED: Final[Mapping[str, str]] = {"simulate-research-query": "server-error"}
