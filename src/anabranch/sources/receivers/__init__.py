"""Push sources: whoever sends, a receiver takes it into a spool, from which it is read like a file."""

from anabranch.sources.receivers.base import Receiver
from anabranch.sources.receivers.open import open_receiver

__all__ = ["Receiver", "open_receiver"]
