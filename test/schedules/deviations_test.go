package schedules

// deviations are the rules, by section and name, in which the broker differs from the server, and why.
var deviations = map[string]string{}
