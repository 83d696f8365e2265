"""What can go wrong with the store."""


class StoreError(Exception):
    """The store cannot be used; the text says why and what to do."""


class StoreUnavailableError(StoreError):
    """The database did not take a change now; asking again later may work."""


class StoreClosedError(StoreError):
    """The store was closed: asking again cannot work."""
