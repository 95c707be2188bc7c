"""Push sources: a receiver writes the records that a peer sends into a spool, from which they are read like a file."""

from anabranch.sources.receivers.base import Receiver
from anabranch.sources.receivers.open import open_receiver

__all__ = ["Receiver", "open_receiver"]
