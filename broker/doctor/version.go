package doctor

import (
	"fmt"
	"slices"
)

// Servers below these have published vulnerabilities, some of which bypass the permissions that separate tenants.
var (
	floor    = []int{2, 12, 12}
	floor214 = []int{2, 14, 3}
)

// belowFloor reports whether a server is older than the broker's promises require. It is false for a version that
// cannot be parsed: that is a development build.
func belowFloor(version string) bool {
	v := make([]int, 3)
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		return false
	}
	if slices.Equal(v[:2], floor214[:2]) {
		return slices.Compare(v, floor214) < 0
	}
	return slices.Compare(v, floor) < 0
}

// knownAboveFloor is not the opposite of belowFloor: for some versions both are false.
func knownAboveFloor(version string) bool {
	var major int
	_, err := fmt.Sscanf(version, "%d.", &major)
	return err == nil && !belowFloor(version)
}
