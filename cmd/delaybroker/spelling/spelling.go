// Package spelling guesses which known name somebody meant who misspelt it.
package spelling

// maxTypo is how many letters of a misspelt name may be wrong.
const maxTypo = 3

// Nearest is the known name that is the fewest letters away from a name; empty if too many would be wrong.
func Nearest(name string, known []string) (nearest string) {
	best := maxTypo + 1
	for _, k := range known {
		if d := distance(name, k); d < best {
			best, nearest = d, k
		}
	}
	return nearest
}

// distance is Levenshtein's: the least number of letters to insert, delete or replace that makes a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // distances of a[:i] from each b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
