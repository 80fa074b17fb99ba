package operation

import (
	"slices"
	"strings"

	"delaybroker/broker/inspect"
)

// An Operation is a list, a look-up or a change.
type Operation struct {
	Name    string   // the words of its command; the page has slashes in place of spaces
	Command string   // the command with this operation, if it has another name
	Short   string   // one line
	Long    string   // the help of the command
	Example string   // lines of the help
	Words   []string // the parameters that the command also takes as words, in their order
	Usage   string   // the words of the command, for its help
	Least   int      // the minimum number of words
	Facts   bool     // a look-up: its row is shown as a list of names and values
	// Final means that the change cannot be undone: on a terminal, the command asks first.
	Final  bool
	Loses  bool   // objects are lost: the page has a red button
	Noun   string // an object of the operation, in the singular
	Label  string // of a change: its button on the page
	Done   string // of a change: the participle
	Hidden bool   // only the service has it
	// Endpoint is the request to the service with the same effect, for one object, whose name is in the subject.
	// ManyEndpoint is that for all objects that match; the subject has only the beginning of their targets.
	Endpoint, ManyEndpoint string
	Message                bool   // the request to Endpoint is the message, and no JSON
	Call                   string // the request to the service about lanes or messages, by the end of its subject
	Without                string // without words, its command is that of this operation
	Columns                []Column
	Actions                []Action // the changes that the page offers for a row
	New                    func(b Bounds) *Use
}

// An Action is a change of the object in a row.
type Action struct {
	Operation string            `json:"operation"`
	With      map[string]string `json:"with"`             // the field of the row for each field of the change
	States    []string          `json:"states,omitempty"` // it is offered for these values of the field "state"; nil for all
	Many      bool              `json:"many,omitempty"`   // it is also offered for all selected rows
}

// Bounds are the limits of a door. Zero is no limit.
type Bounds struct {
	Rows, MaxRows int  // the default and the maximum number of rows of a page
	Read, MaxRead int  // the same, of messages whose headers are read
	AllStates     bool // a list of timers has those in every state, unless it names one
}

// rows returns the parameter for the maximum number of rows. Zero means all, if the door allows that.
func (b Bounds) rows(into *int) *Param {
	low, high, fallback := 0, NoBound, 100
	if b.MaxRows > 0 {
		low, high, fallback = 1, b.MaxRows, b.Rows
	}
	p := Count(into, "limit", "maximum number of rows; 0 for all", fallback, low, high)
	p.Field = true
	if b.MaxRows > 0 {
		p.Choices = []string{"50", "100", "200"}
	}
	return p
}

// reads returns the parameter for the maximum number of messages whose headers are read.
func (b Bounds) reads(into *uint64, fallback, low int) *Param {
	high := NoBound
	if b.MaxRead > 0 {
		high, fallback = b.MaxRead, b.Read
	}
	return Count(into, "most", "maximum number of headers to read", fallback, low, high)
}

// A Desk is what the operations work with.
type Desk struct {
	*inspect.Inspector                          // nil if an operation needs only Timers
	Timers             Timers                   // of the inspector, or of a broker
	Progress           func(read, total uint64) // called while a long operation reads; may be nil
	Terminal           bool                     // the result is for a person at a terminal
	Brief              bool                     // the door shows a page of rows, and needs no total
	HideContent        bool                     // the viewer may not see headers and bodies
	OnePage            bool                     // a list, or a change of all that match, is one page of it
}

func (d *Desk) progress(read, total uint64) {
	if d.Progress != nil {
		d.Progress(read, total)
	}
}

// All has all operations.
var All = slices.Concat(letterOperations, timerOperations, setOperations, scheduleOperations, messageOperations,
	pauseOperations, []Operation{journalOperation})

// Find returns the operation with a name: the words of its command, or the same with slashes.
func Find(name string) (Operation, bool) {
	name = strings.ReplaceAll(name, "/", " ")
	i := slices.IndexFunc(All, func(o Operation) bool { return o.Name == name })
	if i < 0 {
		return Operation{}, false
	}
	return All[i], true
}
