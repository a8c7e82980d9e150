-- SPDX-License-Identifier: Apache-2.0
-- Calls itself at random for ever, in all the ways in which Lua calls. Each function's name says what it calls: fN calls go(N + 1), by one of the ways, and the ways call fN.
local ffi = require("ffi")
ffi.cdef("void qsort(void *base, size_t nr, size_t size, int (*compare)(const int *, const int *));")
math.randomseed(1)
local DEPTH = 12
local go
local numbers = ffi.new("int[3]")
local mt = {}
local inside = 0

local ways = {
	function(n) go(n) return 1 end, -- WAY
	function(n) return select("#", pcall(go, n)) end, -- WAY
	function(n) xpcall(go, debug.traceback, n) return 1 end, -- WAY
	function(n) pcall(function() go(n) error("x") end) return 1 end, -- WAY
	function(n) local a = string.gsub("a", "a", function() go(n) end) return a end, -- WAY
	function(n) table.sort({ 2, 1 }, function(a, b) go(n) return a < b end) return 1 end, -- WAY
	function(n) for _ in coroutine.wrap(function() go(n) coroutine.yield(1) go(n) end) do go(n) end return 1 end, -- WAY
	function(n) local co = coroutine.create(go) coroutine.resume(co, n) return 1 end, -- WAY
	function(n) return setmetatable({ n }, mt).x end, -- WAY
	function(n) return setmetatable({ n }, mt) + 1, 1 end, -- WAY
	function(n) return setmetatable({ n }, mt) .. "", 1 end, -- WAY
	function(n) return tostring(setmetatable({ n }, mt)), 1 end, -- WAY
	function(n) setmetatable({ n }, mt)(1) return 1 end, -- WAY
	function(n) return load("local go, n = ...; go(n) return 1")(go, n), 1 end, -- WAY
	function(n) return (function(...) go(n) return ... end)(1, 2, 3), 1 end, -- WAY
	function(n) local x = 0 for i = 1, 50 do x = x + i ^ 2 % 7 end return x end, -- WAY
	function(n) local t = {} for i = 1, 20 do t[i] = "a" .. i end return table.concat(t) end, -- WAY
}
local function index(t) go(t[1]) return 1 end -- WAY
mt.__index, mt.__add, mt.__concat, mt.__tostring, mt.__call = function(t) go(rawget(t, 1)) return 1 end, index, index, function(t) go(t[1]) return "" end, index -- WAY
local comparing = ffi.cast("int (*)(const int *, const int *)", function() local n = inside go(n) inside = n return 0 end) -- WAY
ways[#ways + 1] = function(n) inside = n ffi.C.qsort(numbers, 3, 4, comparing) return 1 end -- WAY

local f = {}
f[1] = function(n) ways[math.random(#ways)](n) return 1 end -- LAYER 1
f[2] = function(n) ways[math.random(#ways)](n) return 1 end -- LAYER 2
f[3] = function(n) ways[math.random(#ways)](n) return 1 end -- LAYER 3
go = function(n) if n < DEPTH then f[n % 3 + 1](n + 1) end return 1 end -- GO
local function run() while true do go(0) end end -- RUN
run()
