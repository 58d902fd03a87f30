"""The results of a run as a table, as a page with plots, and as a verdict on the requirements.

run ──▶ table (terminal), page (RESULTS.md, the README), plots (by svg), verdict
"""
