# NATS CLI: -J prints the sequence, which is the generation, or fails with "wrong last sequence" (10071)
expect="Nats-Expected-Last-Subject-Sequence"
generation() { tr -d , | sed -n 's/.*Sequence: *\([0-9]*\).*/\1/p'; }

# sets the timer only if there is none
g=$(nats pub -J delaytimer.order-42.orders.expire '{"id":42}' -H Delay-For:30m -H $expect:0 2>&1 | generation)
# moves the timer, with its body, only if its generation is still g
nats pub -J delaytimer.order-42.orders.expire '{"id":42}' -H Delay-For:2s -H $expect:"$g"
# sets and cancels another timer, which will never be delivered
g=$(nats pub -J delaytimer.order-43.orders.expire '{"id":43}' -H Delay-For:2s 2>&1 | generation)
nats pub -J delaytimer.order-43.orders.expire '' -H Delay-Cancel:paid -H $expect:"$g"
# the timer is cancelled already
! nats pub -J delaytimer.order-43.orders.expire '' -H Delay-Cancel:paid -H $expect:"$g"
