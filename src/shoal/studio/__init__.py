"""The studio: the whole road in a browser, on one's own machine (docs/studio.md).

It shows what the other rooms find and has no logic of its own. What may take long, or could fall over a hostile file, is done in
other processes (`jobs`, `worker`, `tasks`); the server only reads and writes the project's folder and draws pages.
"""
