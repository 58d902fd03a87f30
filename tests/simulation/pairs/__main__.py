"""Write the table of pairs: ``python -m tests.simulation.pairs``."""

from tests.simulation.pairs.table import PAGE, replace_in

PAGE.write_text(replace_in(PAGE.read_text()))
