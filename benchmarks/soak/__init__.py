"""The soak test: an hour of load and disturbances, in which nothing may grow.

``python -m benchmarks.soak --minutes 60`` runs two processes and judges the samples of the second.

server   ──HTTP──▶  program  ──samples──▶  trend  ──▶  report, chart

server    an embedded API server whose pods change at a rate, and which is disturbed often
program   informers, listeners that come and go, a controller; writes one sample each few seconds
samples   the quantities that are sampled
trend     the slope of each quantity over time, with its confidence interval
chart     the quantities over time, as SVG
report    the table and the verdict
"""
