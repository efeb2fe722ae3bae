package launcher

// nearest returns the word that is at most a third of its length away from
// wanted, counted in edited letters, or "" when none is.
func nearest(wanted string, words []string) string {
	best, found := "", -1
	for _, w := range words {
		d := distance(wanted, w)
		if d <= max(1, len(w)/3) && (found < 0 || d < found) {
			best, found = w, d
		}
	}
	return best
}

// distance is the number of single-byte edits between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
