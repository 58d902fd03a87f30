"""Write the guide page: ``python -m tests.conformance``."""

from tests.conformance.page import PAGE, render

PAGE.write_text(render())
