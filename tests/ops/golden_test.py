"""The ops against what TensorFlow answered (goldens/, written by peer_test.py): results, and whether there is an error."""
import sys

import cases
import golden

golden.compare(golden.load(sys.argv[1]))
cases.finish()
