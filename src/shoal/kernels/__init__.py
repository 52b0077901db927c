"""The compiled loops. The only room that imports numba; nobody imports it at the top of a module."""
