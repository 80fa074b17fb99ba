package doctor

import "golang.org/x/mod/semver"

// Servers below these have published vulnerabilities, some of which bypass the permissions that separate tenants.
const (
	floor    = "v2.12.12"
	floor214 = "v2.14.3"
)

// belowFloor reports whether a server certainly has one of these vulnerabilities. For an unparsable version, which is a
// development build, it returns false.
func belowFloor(version string) bool {
	v := "v" + version
	if !semver.IsValid(v) {
		return false
	}
	if semver.MajorMinor(v) == semver.MajorMinor(floor214) {
		return semver.Compare(v, floor214) < 0
	}
	return semver.Compare(v, floor) < 0
}

// knownAboveFloor reports whether a server certainly has none of these vulnerabilities. For an unparsable version, it
// also returns false.
func knownAboveFloor(version string) bool { return semver.IsValid("v"+version) && !belowFloor(version) }
