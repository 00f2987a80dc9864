"""For authors: new packages, lint, the catalogue as files and the site made of it."""
