package doctor

import "golang.org/x/mod/semver"

// Servers below these versions have published vulnerabilities. Some bypass the permissions that separate tenants.
const (
	minVersion    = "v2.12.12"
	minVersion214 = "v2.14.3"
)

// isVulnerable reports whether a server has one of these vulnerabilities. For an unparsable version, which is a
// development build, it returns false.
func isVulnerable(version string) bool {
	v := "v" + version
	if !semver.IsValid(v) {
		return false
	}
	if semver.MajorMinor(v) == semver.MajorMinor(minVersion214) {
		return semver.Compare(v, minVersion214) < 0
	}
	return semver.Compare(v, minVersion) < 0
}

// isSecure reports whether a server has none of these vulnerabilities. For an unparsable version, it also returns
// false.
func isSecure(version string) bool { return semver.IsValid("v"+version) && !isVulnerable(version) }
