-- SPDX-License-Identifier: Apache-2.0
-- Spins with one known stack for ever: luajit luajit_spin.lua SCENARIO. Prints what debug.getinfo says of it before, leaf first: `T PID SCENARIO`, `first-line file line` for each
-- Lua function, `E`.
local ffi = require("ffi")
ffi.cdef("int getpid(void); void qsort(void *base, size_t nr, size_t size, int (*compare)(const int *, const int *));")

local resumed = {} -- the stack of what has resumed the coroutine

-- The Lua functions from this level on, leaf first.
local function stack(level)
	local frames, info = {}, debug.getinfo(level, "Sl")
	while info do
		if info.what ~= "C" then
			frames[#frames + 1] = (info.what == "main" and 0 or info.linedefined) .. " " .. info.short_src:gsub(" ", "_") .. " " .. info.currentline
		end
		level, info = level + 1, debug.getinfo(level + 1, "Sl")
	end
	return frames
end

local function tell()
	local frames = stack(3)
	print("T " .. ffi.C.getpid() .. " " .. arg[1])
	print(table.concat(frames, "\n"))
	if #resumed > 0 then print(table.concat(resumed, "\n")) end
	print("E")
	io.stdout:flush()
end

local told
local x, t, text = 0, {}, ""
local lazy = setmetatable({}, { __index = function(_, key) return key + 1 end }) -- STEP
local function step(i) return i % 7 end -- STEP
local function varying(...) return select("#", ...) end -- STEP
local compare = function(a, b) return a < b end -- STEP
local yielding = coroutine.wrap(function() while true do coroutine.yield(1) end end) -- STEP

-- Does a little of everything. What it calls is marked as above.
local function spin()
	if not told then told = true; tell() end
	while true do
		for i = 1, 100 do
			x = x + step(i) + math.floor(i / 3) + i ^ 2 % 3
			t[i % 50] = { i }
			text = text .. i
		end
		x = lazy[1] + varying(1, 2, x) + select(2, pcall(step, 3)) + #tostring(x)
		text = string.sub(text, -5):gsub("%d", step)
		table.sort({ 3, 1, 2 }, compare)
		for _, v in ipairs(t) do x = x + v[1] end
		for _, v in pairs(t) do x = x + #v end
		x = (x + yielding()) % 1000
	end
end

local function nested(n) if n == 0 then spin() else nested(n - 1) end return n end
local function tail(n) if n == 0 then return spin() end return tail(n - 1) end
local function varied(...) spin() return ... end
local mt = {
	__index = function(t, k) spin() return k end,
	__newindex = function(t, k, v) spin() end,
	__add = function(a, b) spin() return 1 end,
	__call = function(self, a) spin() return a end,
	__concat = function(a, b) spin() return "" end,
	__eq = function(a, b) spin() return true end,
	__lt = function(a, b) spin() return true end,
	__tostring = function() spin() return "" end,
}

local function start(body)
	local co = coroutine.create(body)
	resumed = stack(2) local ok = coroutine.resume(co)
	return ok
end

local scenarios = {
	plain = function() spin() return 1 end,
	deep = function() nested(300) return 1 end,
	tail = function() tail(5) return 1 end,
	vararg = function() varied(1, 2, 3) return 1 end,
	pcall = function() pcall(nested, 3) return 1 end,
	xpcall = function() xpcall(function() nested(1) return 1 end, debug.traceback) return 1 end,
	handler = function() xpcall(function() error("x") end, function() spin() return 1 end) return 1 end,
	index = function() return setmetatable({}, mt).x, 1 end,
	newindex = function() setmetatable({}, mt).x = 1 return 1 end,
	add = function() return setmetatable({}, mt) + 1, 1 end,
	call = function() setmetatable({}, mt)(2) return 1 end,
	concat = function() return setmetatable({}, mt) .. "a", 1 end,
	equal = function() return setmetatable({}, mt) == setmetatable({}, mt), 1 end,
	less = function() return setmetatable({}, mt) < setmetatable({}, mt), 1 end,
	tostring = function() return tostring(setmetatable({}, mt)), 1 end,
	gsub = function() return string.gsub("abc", "b", function(s) nested(2) return s end), 1 end,
	sort = function() table.sort({ 3, 1, 2 }, function(a, b) spin() return a < b end) return 1 end,
	loaded = function() local f = load("local spin = ...\nlocal function inner()\n  spin()\n  return 1\nend\ninner()\nreturn 1") f(spin) return 1 end,
	callback = function()
		local data = ffi.new("int[3]", 3, 1, 2)
		ffi.C.qsort(data, 3, 4, function(a, b) nested(2) return a[0] - b[0] end)
		return 1
	end,
	gc = function()
		local proxy = newproxy(true)
		getmetatable(proxy).__gc = function() spin() return 1 end
		proxy = nil
		collectgarbage()
		return 1
	end,
}
local function iterate(body) for v in body do return v end end
scenarios.iterator = function() iterate(function() spin() return 1 end) return 1 end

local in_coroutine = {
	coroutine = function() nested(2) return 1 end,
	inner = function() pcall(function() string.gsub("abc", "b", function() spin() return 1 end) return 1 end) return 1 end,
}

local function main()
	local scenario = arg[1]
	if scenario == "wrap" then
		local wrapped = coroutine.wrap(function() coroutine.yield(1); nested(1) return 1 end)
		wrapped()
		iterate(function() resumed = stack(2) local v = wrapped() return v end)
	elseif in_coroutine[scenario] then
		start(in_coroutine[scenario])
	else
		scenarios[scenario]()
	end
	return 1
end
main()
