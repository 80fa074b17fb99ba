// Package spelling finds the known name nearest to a misspelt one.
package spelling

import "github.com/agnivade/levenshtein"

// maxTypo is the maximum Levenshtein distance of a misspelt name.
const maxTypo = 3

// Nearest returns the known name at the smallest Levenshtein distance. It returns "" if that distance exceeds maxTypo.
func Nearest(name string, known []string) (nearest string) {
	minDistance := maxTypo + 1
	for _, k := range known {
		if d := levenshtein.ComputeDistance(name, k); d < minDistance {
			minDistance, nearest = d, k
		}
	}
	return nearest
}
