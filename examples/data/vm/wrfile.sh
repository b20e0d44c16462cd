# Writes of the data disk are held to 24 MB/s.
DATAOPT=,throttling.bps-write=24000000
