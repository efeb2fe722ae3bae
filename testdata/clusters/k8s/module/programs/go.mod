module assay.test/programs

go 1.25.0
