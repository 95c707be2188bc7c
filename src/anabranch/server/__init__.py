"""The server: long-lived sessions of streams, graphs and queries, reachable over the network."""
