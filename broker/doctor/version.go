package doctor

import "golang.org/x/mod/semver"

// recommendedServers are the oldest servers without a weakness, in the words of an advice.
const recommendedServers = "2.14.10, 2.15.3 or later"

// serverWeakness returns what is wrong with a server of that version, for a sentence "nats-server 2.14.2 …". It returns
// the empty string for a server without a weakness, and for an unparsable version, which is a development build.
func serverWeakness(version string) string {
	switch {
	case isVulnerable(version):
		return "has known vulnerabilities, some in the permissions that separate tenants"
	case isBefore(version, "v2.14.10", "v2.15.3"):
		return "lets a client name a subject below $JS for an answer, so the server may take its answer for a request"
	}
	return ""
}

// isVulnerable reports whether a server has a published vulnerability. Some bypass the permissions that separate
// tenants.
func isVulnerable(version string) bool { return isBefore(version, "v2.12.12", "v2.14.3") }

// isSecure reports whether a server has none of these vulnerabilities. For an unparsable version, it also returns
// false.
func isSecure(version string) bool { return semver.IsValid("v"+version) && !isVulnerable(version) }

// isBefore reports whether a version is below first. Within the minor version of second, it must be below second. For
// an unparsable version, isBefore returns false.
func isBefore(version, first, second string) bool {
	v := "v" + version
	if semver.MajorMinor(v) == semver.MajorMinor(second) {
		first = second
	}
	return semver.IsValid(v) && semver.Compare(v, first) < 0
}
