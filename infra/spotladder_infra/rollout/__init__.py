"""The platform layer: CRDs, Karpenter, pools, KubeRay and the controller, rolled out to a fleet in waves.

Pulumi keeps the state, with one stack for each cluster. Its resources are Helm releases and sets of CRDs; a dynamic
provider changes them with helm and kubectl. `plan` decides which releases each cluster gets, without calls of helm,
kubectl or a cloud.
"""
