from declare import op

op("RandomShuffle", None, no_oracle="random_test.py computes its stream")
