// Package page serves the page: the state of the fleet, and actions, in a browser. The fleet is all running instances
// of the broker.
//
//	GET  /                  the page
//	GET  /assets/…          the embedded files; a browser requests nothing from another host
//	GET  /api/events        server-sent events: the state each second, the last hour, the forecast, counts of findings
//	GET  /api/history       deliveries, refusals, lateness and pending messages of the last hour or day
//	GET  /api/ahead         the forecast: the messages due in each minute of the next hour, or each hour of the next week
//	GET  /api/findings      the findings of package doctor
//	GET  /api/operations    the operations: their names, the fields of their forms, the actions for their rows
//	GET  /api/look/…        the rows of an operation, such as dead/ls; /api/find looks with several operations
//	GET  /api/targets       deliveries, refusals and pauses, by target
//	GET  /api/content       headers and body of one message
//	POST /api/plan          plans an action, and counts the objects that the action would change
//	POST /api/act           executes a plan
//
// # One producer
//
//	viewer ◀─┐
//	viewer ◀─┼── frames ◀── produce ──┬── Engine.Status        this instance; each second
//	viewer ◀─┘                        ├── Inspector.Fleet      the other instances; each second
//	                                  ├── Inspector.Lanes      the number of dead letters
//	                                  ├── Inspector.Forecast   the forecast
//	                                  └── doctor.Gather        findings
//
// A viewer is an open event stream. While there are viewers, the page reads the dead letters, the forecast and the
// findings at most once a minute, and after each action. A frame is one server-sent event. All viewers get the same
// frames, which are encoded once. A few seconds after the last viewer has left, the page makes no frame and closes its
// connections. A slow viewer misses frames, because the page keeps only the latest frame of each kind for a viewer. A
// question is a request that the page answers from the streams. maxViewers limits the number of viewers, and
// maxQuestions the number of concurrent questions. A hidden tab closes its event stream, because a browser opens at
// most six connections to a host, and each event stream uses one.
//
// The page's history is in memory, in package history. Each instance records its own history, even without viewers. The
// page adds up the histories of all instances.
//
// # Access
//
// The overview contains no ids and no keys, so it needs no token, as /status and /metrics need none. Rows and findings
// contain the ids, the keys and the targets of tenants, and the reasons of refusals. A viewer without a token sees them
// only if Access.OpenRows is set. Headers and bodies also need Access.Bodies. A viewer requests them for one message at
// a time, and the broker logs each response with the name of the token. Actions need Access.Actions and a token.
//
//   - A request contains the token in the header Authorization. The browser keeps the token for the tab. There is no
//     cookie, so another web page cannot act with the token. No URL contains the token, so no proxy logs it.
//   - The Host of a request must be an address, localhost, or a name in Access.Hosts. Without this check, an attacker's
//     web page could read this page, because the attacker's host name may resolve to 127.0.0.1.
//   - A request for an action must be JSON, and must not come from another web page.
//   - Only the embedded scripts run, and no script makes HTML from text. The browser enforces both rules: see the
//     Content-Security-Policy in securityHeaders, which requires Trusted Types.
//
// # Plan, then act
//
// A viewer first plans an action. The plan counts the objects, and bounds them: by the generation of a timer, by the
// last sequence of a listing, or by the latest time of a dead letter. The plan is sealed with the viewer's token, and
// the page executes only sealed plans. So an action on timers or dead letters changes only counted objects. An instance
// can execute the plan of another instance with the same tokens.
//
// Lists, look-ups and actions are those of package operation, which the command line has, too. The page knows no single
// one of them. Its answer to a look has the columns, so one function of its scripts draws each table.
//
// # Vendored
//
// uPlot 1.6.32 draws the charts. Preact 11.2.0 draws everything else, without a build step: a view is a function that
// returns its tree of elements, and Preact applies the differences to the document. So an update of times or rows keeps
// the sorting, the selection and the focus. The files of both libraries are unchanged. A test checks their digests.
package page
