"""Pods of the Helm chart.

  chart.py      the chart, rendered, and the API's schemas; oci.py: images
  container.py  a container of a rendered pod; node.py: a network of pods
  kubelet.py    in which order a kubelet starts, asks and ends containers
"""
