"""The one road a call takes, from a name and arguments to an envelope and a row on the trail."""
