"""The client, against small servers on real sockets."""
