package metric

// CutRows lists what a reading may have been whose line was cut. The metric of a
// row may be the beginning of a longer one. That of a line may also be the
// beginning of a unit, which any metric may follow; and behind a unit it may be
// the beginning of "on 8 GPUs", so that the unit was the metric.
func CutRows(r Reading) []Row {
	row := Row{Name: r.Name, Model: r.Model, Place: r.Place, Cut: r.Source != SourceKeyValue}
	switch {
	case r.Source != SourcePerformance:
		return []Row{row}
	case r.Unit == "" || r.Unit == r.Name: // the one word may go on
		row.Name = ""
		return []Row{row}
	}
	return []Row{row, {Name: r.Unit, Place: r.Place}}
}
