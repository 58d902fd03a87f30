"""The library compared with its peers, and measurements of its own: ``python -m benchmarks``.

    load ──bytes──▶ contestants, peers ──▶ measures ──▶ run ──▶ report (RESULTS.md, README)

- ``load``: what is sent, and the servers that send it;
- ``contestants``: the library, the floor and the peers, of which ``peers`` has the programs;
- ``measures``: the measurements of a run, in Python processes of their own;
- ``run``: all of them, once or several times;
- ``report``: tables, plots and the comparison with the requirements;
- ``features``: measurements of single features, each a command of its own;
- ``soak``: an hour of informers, and a verdict on what grows.
"""
