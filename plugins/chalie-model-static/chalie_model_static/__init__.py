"""The embedding model of Chalie. The folder `model` beside this file is all there is; nothing runs."""
