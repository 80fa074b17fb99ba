package doctor

import "golang.org/x/mod/semver"

// Servers below these versions have published vulnerabilities. Some bypass the permissions that separate tenants.
const (
	minVersion    = "v2.12.12"
	minVersion214 = "v2.14.3"
)

// vulnerable reports whether a server has one of these vulnerabilities. For an unparsable version, which is a
// development build, it returns false.
func vulnerable(version string) bool {
	v := "v" + version
	if !semver.IsValid(v) {
		return false
	}
	if semver.MajorMinor(v) == semver.MajorMinor(minVersion214) {
		return semver.Compare(v, minVersion214) < 0
	}
	return semver.Compare(v, minVersion) < 0
}

// knownSecure reports whether a server has none of these vulnerabilities. For an unparsable version, it also returns
// false.
func knownSecure(version string) bool { return semver.IsValid("v"+version) && !vulnerable(version) }
