module thalweg.org/go

go 1.18
