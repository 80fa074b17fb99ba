# NATS CLI: -J prints the sequence, which is the generation, or fails with "wrong last sequence" (10071)
expect="Nats-Expected-Last-Subject-Sequence"
generation() { tr -d , | sed -n 's/.*Sequence: *\([0-9]*\).*/\1/p'; }

# only if there is none
g=$(nats pub -J delaytimer.order-42.orders.expire '{"id":42}' -H Delay-For:30m -H $expect:0 2>&1 | generation)
# moved, with the body, and only if it is still this one
nats pub -J delaytimer.order-42.orders.expire '{"id":42}' -H Delay-For:2s -H $expect:"$g"
# cancelled: it will never be delivered
g=$(nats pub -J delaytimer.order-43.orders.expire '{"id":43}' -H Delay-For:2s 2>&1 | generation)
nats pub -J delaytimer.order-43.orders.expire '' -H Delay-Cancel:paid -H $expect:"$g"
# too late
! nats pub -J delaytimer.order-43.orders.expire '' -H Delay-Cancel:paid -H $expect:"$g"
