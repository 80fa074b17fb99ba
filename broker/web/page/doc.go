// Package page serves the page: the state of the fleet (all running instances of the broker), and actions, in a browser
// or as text.
//
//	GET  /                  the page; plain text for clients that do not ask for HTML
//	GET  /assets/…          its embedded files: a browser requests nothing from another host
//	GET  /api/events        server-sent events: the state each second, the last hour, the forecast, the count of findings
//	GET  /api/history       deliveries, refusals, lateness and pending messages of the last hour or day
//	GET  /api/ahead         the number of messages due in the next hour, or seven days
//	GET  /api/findings      the findings of package doctor
//	GET  /api/pending …     rows: messages, timers, dead letters, targets; /api/find searches all of them
//	GET  /api/content       headers and body of one message
//	POST /api/plan          plans an action, and counts its objects
//	POST /api/act           executes a plan
//
// # One producer
//
//	viewer ◀─┐
//	viewer ◀─┼── frames ◀── produce ──┬── Engine.Status             this instance
//	viewer ◀─┘                        ├── Inspector.Fleet           the others, by the control service; once a second
//	                                  ├── Inspector.Lanes, Forecast streams and forecast; once a minute at most
//	                                  └── doctor.Gather             findings; once a minute at most
//
// A frame is one server-sent event. All viewers get the same frames, which are encoded once. Without a viewer, no frame
// is made and no connection is open. A slow viewer misses frames: the page keeps only the latest frame of each kind for
// that viewer. maxViewers bounds the number of viewers, and maxQuestions the number of concurrent questions. A question
// is a request that the page answers from the streams. A hidden tab closes its event stream, because a browser opens at
// most six connections to a host and each event stream uses one.
//
// The page's history is in memory, in package history. Each instance records its own part, even without viewers, and
// the page adds the parts up.
//
// # Access
//
// The overview has the data of /status and /metrics, and is visible to the same viewers. Rows and findings contain ids,
// keys and targets of tenants, and their reasons for refusals. Without a token, the page shows rows and findings only
// if Access.OpenRows is set. Headers and bodies also need Access.Bodies. A viewer requests them for one message at a
// time, and the broker logs each response with the name of the token. Actions need Access.Actions and a token.
//
//   - The token travels in the header Authorization, and the page keeps it in the tab. There is no cookie, so no other
//     web page can act with it. No URL contains it, so no proxy logs it.
//   - The Host of a request must be an address, localhost, or a name in Access.Hosts. If any name were allowed, a web
//     page of an attacker, whose name resolves to 127.0.0.1, could read this page.
//   - A request for an action must be JSON, and come from the page's own origin.
//   - Only the embedded scripts run, and none of them makes HTML from text. The browser enforces both, by the
//     Content-Security-Policy with Trusted Types.
//
// # Plan, then act
//
// A viewer first plans an action. The plan counts and fixes the objects: the generation of a timer, the last sequence
// of a listing, or the latest time of a dead letter. The plan is sealed with the viewer's token, and the page executes
// only sealed plans. So the action changes the counted objects, or fewer of them, and no others. An instance can
// execute the plan of another instance.
//
// The actions are those of the command line. Package store changes timers, and package inspect changes dead letters and
// pauses.
//
// # Vendored
//
// uPlot 1.6.32 draws the charts. Preact 11.2.0 draws everything else, without a build step: a view is a function that
// returns its tree, and Preact applies the differences. So an update of times or rows keeps the sorting, the selection
// and the focus. Both files are unchanged. A test checks their digests.
package page
