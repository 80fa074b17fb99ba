package inspect

import "context"

// The helpers of the tests in package inspect_test. That package imports package broker, which imports this one.
var (
	OpenAs        = open
	ConfigOf      = configOf
	CreateStreams = createStreams
	NewMsg        = newMsg
	StoreAll      = storeAll
	ForecastOf    = forecastOf
	Pages         = pages
	Publish       = publish
	Journaling    = journaling
	WriteRecords  = writeRecords
)

// DeleteMessage deletes a message of a stream.
func DeleteMessage(i *Inspector, stream string, sequence uint64) error {
	return i.api.Delete(context.Background(), stream, sequence)
}
