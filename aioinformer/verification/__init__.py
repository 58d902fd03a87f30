"""The comparison of a cache with the server: what ``SharedInformer.verify`` returns.

Example::

    from aioinformer.verification import Verification

    result: Verification = await pods.verify(timeout=30)
    assert result, result.differences
"""

from aioinformer.verification.state.verification import Verification

__all__ = ["Verification"]
