"""Training in several processes: loopback and its ports, and how Horovod is started."""
