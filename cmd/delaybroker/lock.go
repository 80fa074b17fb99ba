package main

import "errors"

// lockFile lies in the directory of the embedded server. It stays there: removing it would let two processes hold a lock
// on two files of one name.
const lockFile = "delaybroker.lock"

// errLocked is returned by lockDir when another process holds the directory. Two servers on one store destroy it.
var errLocked = errors.New("in use by another delaybroker")
