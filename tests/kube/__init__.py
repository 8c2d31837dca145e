"""The controller on a bare API server: etcd and kube-apiserver, without nodes and other controllers."""
