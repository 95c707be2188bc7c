"""The server: sessions of streams, graphs and queries that live for long, and how they are reached over the network."""
