"""The comparison with client-go: a checklist, the tests of each item, and the guide made of both.

The checklist has the 135 behaviours that the tests of client-go's ``tools/cache`` and its
neighbours prove. A test here that proves the same behaviour names the item in its
``client_go`` marker. A deliberate difference is a row of ``differences``.
``python -m tests.conformance`` writes the guide page.
"""
