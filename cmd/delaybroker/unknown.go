package main

import (
	"regexp"
	"slices"
	"strings"
)

// injected are the names that Kubernetes and Docker links give the addresses of a service called "delay" or "delay-…".
var injected = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// maxTypo is how many letters may be wrong for a name to be taken for another.
const maxTypo = 3

// An unknownName is a variable that looks like a setting of ours and is none.
type unknownName struct {
	name    string
	nearest string // the setting that was probably meant; empty when none is near
}

// unknownNames finds misspelt settings in the environment. They are worth a warning and not an error, because others may
// put variables with our prefix there.
func unknownNames(environ, known []string) []unknownName {
	var unknown []unknownName
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		rest, ours := strings.CutPrefix(name, envPrefix+"_")
		if !ours || injected.MatchString(name) || slices.Contains(known, name) || slices.Contains(known, rest) {
			continue
		}
		u := unknownName{name: name}
		best := maxTypo + 1
		for _, k := range known {
			if d := distance(name, k); d < best {
				best, u.nearest = d, k
			}
		}
		unknown = append(unknown, u)
	}
	return unknown
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
