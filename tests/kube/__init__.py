"""The operator against a bare API server: etcd and kube-apiserver, no nodes, no other controllers."""
