// Package spelling finds the known name that a misspelt one was meant to be.
package spelling

import "github.com/agnivade/levenshtein"

// maxTypo is the maximum distance of a misspelt name.
const maxTypo = 3

// Nearest returns the known name at the smallest Levenshtein distance; empty if more than maxTypo letters differ.
func Nearest(name string, known []string) (nearest string) {
	best := maxTypo + 1
	for _, k := range known {
		if d := levenshtein.ComputeDistance(name, k); d < best {
			best, nearest = d, k
		}
	}
	return nearest
}
