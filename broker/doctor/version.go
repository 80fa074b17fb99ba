package doctor

import (
	"fmt"
	"slices"
)

// Servers below these have published security holes, some of which go around the permissions that keep tenants apart.
var (
	floor    = []int{2, 12, 12}
	floor214 = []int{2, 14, 3}
)

// belowFloor reports whether a server is older than what the promises of the broker rest on. A version that cannot be
// read is not: it is a development build.
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

// knownAboveFloor is not the opposite of belowFloor: of some versions neither is known.
func knownAboveFloor(version string) bool {
	var major int
	_, err := fmt.Sscanf(version, "%d.", &major)
	return err == nil && !belowFloor(version)
}
