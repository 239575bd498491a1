"""Compares the ops with TensorFlow's answers (goldens/, written by peer_test.py): results, and whether there is an error."""
import sys

import cases
import golden

golden.compare(golden.load(sys.argv[1]))
cases.finish()
