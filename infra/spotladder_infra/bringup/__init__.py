"""The bring-up of a cluster, hop by hop: the object of its stack or releases that allows each hop, if any."""
