# Every distribution, on objects of sizes that no table likes, with cursors that go on between commands.
# A `#` begins a comment only at the start of a word.
anon one 0.00390625
anon a 3.7	# 947 pages
file big 40
shm s 1.5
acc 5 one seq m w
acc 5 one rev m r
acc 3 one zipf:150 m r
acc 1000 a uni m r
seed 77
acc 1500 a seq m w
acc 300 a rev m r
acc 700 a stride:7 m r
acc 2000 a stride:947 m r
acc 100 a stride:1 m r
acc 900 a part:10:3 m r
acc 600 a part:1:1 m r
acc 700 a part:2000:30 m r
acc 9000 a zipf:50 m r
acc 9000 a zipf:100 m w
acc 9000 a zipf:150 m r
rewind a
inter 333 3 big seq s r 1 a seq m w 2 s zipf:100 s w 0 s uni m r 5 big uni m w
statuni /data/tree 7 11 13
acc x2 s part:3:2 s r
acc 20000 big zipf:100 s r
acc 30000 big uni m r
acc 20000 big zipf:50 m r
inter 100 1 big rev m r 1 big stride:129 m w 1 big part:100:7 s r
